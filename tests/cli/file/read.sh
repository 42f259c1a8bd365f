# Text of a root, and a window of it in characters.
mkdir notes && printf 'h\303\244ll\303\266 w\303\266rld\n' >notes/a.md && : >notes/empty.md
f() { "$PX" file "$@" --root notes=notes; }
f read notes/a.md
f read notes:a.md
f read notes//./sub/../a.md
f read notes/a.md --max-chars 4 && echo '|'
f read notes/a.md --offset 6 --max-chars=3 && echo '|'
f read notes/a.md --offset 99 && echo '|'
f read notes/empty.md && echo '|'
f read notes/a.md --max-chars 0 && echo '|'
says f read notes/a.md --max-chars -1
"$PX" --json file read --root notes=notes notes/a.md --max-chars 4
