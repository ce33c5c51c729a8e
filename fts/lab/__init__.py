"""What the book needs and a user does not: studies, figures, recorded explorers, the layout page."""
