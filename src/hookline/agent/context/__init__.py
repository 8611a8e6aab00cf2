"""What the model reads: prompts, instructions, definitions, and room for more of them."""
