"""What a frozen field is: its spatial and temporal halves, its file, where it came from, those that ship."""
