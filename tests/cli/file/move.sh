# Nothing is replaced, and nothing leaves.
mkdir a b && echo one >a/1.md && echo two >a/2.md && echo three >b/3.md && ln -s ../b a/link
f() { "$PX" file "$@" --root a=a:rw --root b=b; }
f move a/1.md a/new/1.md && cat a/new/1.md
f copy b/3.md a/3.md && cat a/3.md
says f move a/2.md a/3.md
says f copy a/2.md b/2.md
says f move b/3.md a/4.md
says f copy a/2.md a/link/2.md
says f move a/2.md ../2.md
says f delete a/new
says f delete a/none
f delete a/2.md
f delete a/link && ls b
f move a/new a/old
find a b | sort
