# What is not understood is said, with status 2.
mkdir u
says "$PX" file
says "$PX" file fly
says "$PX" file --root u=u read u/a
says "$PX" file read --root u=u
says "$PX" file read --root u=u u/a u/b
says "$PX" file read --root u=u --nosuch u/a
says "$PX" file move --root u=u u/a
says "$PX" file read --root
says "$PX" file list --root u=u --json=yes
says "$PX" file read --root u=u --input request.json
"$PX" file read --help | head -n 1
"$PX" file --help | grep -c '^  px'
