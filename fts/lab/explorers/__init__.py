"""Explorers of recorded runs: noise levels, pools of functions, trainings, numbers of sensors."""
