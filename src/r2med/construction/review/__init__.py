"""Human review: reviews, labels, the file of reviews, and what a reviewer sees next."""
