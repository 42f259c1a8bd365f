# -v shows both sides of each probe.
"$PX" exec --require full -- true || skip 'no box of the full tier starts here'
"$PX" -v doctor >all || { cat all; exit 1; }
for name in 'user  ' 'read-only mounts' 'no privileges' 'seccomp filter' 'whole-tree kill'; do
    grep -A2 "^[a-z]* *$name" all
done
