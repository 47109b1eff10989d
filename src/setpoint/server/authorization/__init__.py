"""Who may do what: rules, the roles and bindings that give them, and how a refusal is worded."""
