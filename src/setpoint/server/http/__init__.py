"""The API over HTTP: routes, forms of answers, streams of watches, discovery and OpenAPI."""
