# A compiler, a shell, make and git on local files.
need gcc make git bash
mkdir work
chmod 777 work
"$PX" exec --seccomp strict --timeout 50s --work-dir "$TMP/work" -e HOME=/tmp -- bash -c '
set -eu
printf "#include <stdio.h>\nint main(void) { puts(\"compiled\"); return 0; }\n" >a.c
printf "a: a.c\n\tgcc -O1 -o a a.c\n" >Makefile
make -s && ./a
cat <(echo substituted)
git init -q repo && cd repo
git config user.name n && git config user.email e
echo 1 >f && git add f && git commit -qm first && git gc -q
cd .. && git clone -q repo copy && git -C copy log --format=%s
'
