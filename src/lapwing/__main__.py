"""``python -m lapwing``: the command line."""

if __name__ == "__main__":
    from lapwing.launch.search_path import leave_current_directory

    leave_current_directory()

    from lapwing.cli.main import main

    main()
