"""Human review: reviews, labels, the file of reviews, and the next candidate of a reviewer."""
