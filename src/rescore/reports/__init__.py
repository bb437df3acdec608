"""What a fit leaves behind for people: pictures, tables, one page, and a folder of files."""
