"""Looking into a benchmark and its results: what its queries share with their gold documents."""
