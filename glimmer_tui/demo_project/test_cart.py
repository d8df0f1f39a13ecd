from cart import cheapest, is_free_shipping, line_total, with_shipping


def test_line_total():
    assert line_total(3, 4) == 12


def test_with_shipping():
    assert with_shipping(12, 5) == 17


def test_is_free_shipping():
    assert is_free_shipping(50, 50)
    assert not is_free_shipping(49, 50)


def test_cheapest():
    assert cheapest([3, 1, 2]) == 1
