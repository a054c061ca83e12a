"""Plants errors in what instructions compute and in what accesses cost, and counts those that tests
detect. Comes in: a seed. Goes out: mutants, and the verdict of the tests on each."""
