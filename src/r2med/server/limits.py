"""The limits of a server, so that no client can exhaust its memory, time or threads."""

MAX_BODY = 1 << 20
"""Maximum bytes of a request. 512 queries of an agent in training have about 50 kB."""
MAX_QUERIES = 1024
"""Maximum number of queries in a request."""
MAX_CHARACTERS = 20_000
"""Maximum number of characters in a query."""
MAX_TOPK = 1000
"""Maximum number of documents for a query."""
MAX_DOCUMENTS = 10_000
"""Maximum number of documents in a whole answer (queries × topk). An answer is held in memory."""
MAX_WAITING = 256
"""Maximum number of requests that wait for a search. One more gets 503."""
BATCH_QUERIES = 64
"""Maximum number of queries of waiting requests that are searched together."""
MAX_ANSWERS = 16
"""Maximum number of questions that POST /search answers at the same time. One more gets 503."""
ANSWER_SECONDS = 120
"""Seconds that the answer to one question may take. Some LLMs think for a minute before they write."""
BODY_SECONDS = 30
"""Seconds that a client has to send the body of a request."""
GRACE_SECONDS = 5
"""Seconds that a running search has to finish after a stop. Then its clients get 503."""
