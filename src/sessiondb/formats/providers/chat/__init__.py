"""OpenAI's Chat Completions, which many servers speak: messages in both directions."""
