"""The recipe of the bundled demonstration model: data, training, export and checks. Not in the wheel."""
