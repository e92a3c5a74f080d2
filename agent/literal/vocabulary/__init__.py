"""What words mean: verbs and programs, numbers, quotations, and what desktops call things in which language."""
