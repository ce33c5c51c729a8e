"""How the methods that train a network train it (torch); their files one folder up import without it."""
