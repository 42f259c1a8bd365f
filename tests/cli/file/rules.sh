# Which roots there may be, and that a child has less.
mkdir -p p/sub/in q && echo x >p/a.md && echo y >p/sub/b.md
"$PX" file roots --root p=p:rw:suffixes=.md,.PDF:max=10m --root q=q --root q/deep=made:create
says "$PX" file roots
says "$PX" file roots --root p=p --root p=q
says "$PX" file roots --root p=p --root s=p/sub
says "$PX" file roots --root p=p --root p/sub=p/sub:ro
says "$PX" file roots --root .p=p
says "$PX" file roots --root p=p:max=none
says "$PX" file roots --root p
says "$PX" file roots --root p=p/a.md
f() { "$PX" file "$@" --root p=p:rw --root q=q; }
f roots --allow-read p --allow-write p/sub
f roots --read-only
try f can-write p/a.md --allow-read p --allow-write p/sub
try f can-write p/sub/b.md --allow-read p --allow-write p/sub
try f can-read q/x --allow-read p
try f can-read q/x
f list p --allow-read p/sub
says f roots --allow-write q
says f roots --allow-read p/sub/..
says f roots --allow-read p/a.md
says f roots --allow-write p --allow-read p/sub
f resolve p/sub/../sub/./none
