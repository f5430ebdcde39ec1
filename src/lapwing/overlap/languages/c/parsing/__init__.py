"""C and C++ sources as text: tokens, directives, what they include, and the flags that compilers get."""
