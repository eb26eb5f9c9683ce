"""What happens live: transports, SDK and tool hooks, the recorder; in replay, what stands in their place."""
