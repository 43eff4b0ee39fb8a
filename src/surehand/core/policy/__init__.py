"""Built-in policy (spec §6.1, §6.2): rules as records, a TOML reader, one evaluator, the defaults, the categories."""
