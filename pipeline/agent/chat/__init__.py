"""Have a language model behind an OpenAI-compatible server be the policy of an agent."""
