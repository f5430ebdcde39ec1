"""What is found out about a program, apart from its control flow: on statements and loops here, on memory, effects, messages and
ranks in folders of their own."""
