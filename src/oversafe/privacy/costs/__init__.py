"""What oversampling and bagging cost: groups, neighbours in space, budgets."""
