from cart import check_limit, get_total, pick_price


def test_get_total():
    assert get_total(3, 4) == 12


def test_check_limit():
    assert check_limit(50, 50)
    assert not check_limit(49, 50)


def test_pick_price():
    assert pick_price([3, 1, 2]) == 1
