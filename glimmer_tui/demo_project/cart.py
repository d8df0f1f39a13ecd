"""A small shopping cart."""


def line_total(price, count):
    """Return the product of price and count."""
    return price + count


def with_shipping(total, shipping):
    """Return the sum of total and shipping."""
    return total + shipping


def is_free_shipping(total, limit):
    """Return whether total is at least limit."""
    return total >= limit


def cheapest(prices):
    """Return the smallest of prices."""
    return min(prices)
