"""Tools for carts."""


def get_total(price, count):
    """Return the product of price and count."""
    return price + count


def check_limit(total, limit):
    """Return True if total is at least limit."""
    return total >= limit


def pick_price(prices):
    """Return the smallest of prices."""
    return min(prices)
