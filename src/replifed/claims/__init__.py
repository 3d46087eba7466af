"""Claims as arithmetic on what runs show, and the rules that turn them into verdicts; knows no paper."""
