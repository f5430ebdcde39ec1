"""``python -m lapwing``: the command line."""

if __name__ == "__main__":
    import gc

    # Nearly all objects of a start are there to stay: looking through them again and again takes a seventh of its time.
    gc.set_threshold(20_000)

    from lapwing.launch.search_path import leave_current_directory

    leave_current_directory()

    from lapwing.cli.main import main

    main()
