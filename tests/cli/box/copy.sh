# Files in and out; nothing else, nothing half, and nothing over something that is there.
trap '"$PX" box stop --all' EXIT
"$PX" box start --name c
mkdir -p in/sub && echo one >in/a && echo two >in/sub/b && chmod 755 in/a && ln -s /etc/passwd in/link
"$PX" box copy in c:/tmp
"$PX" box exec c -c 'cd /tmp/in && find . -type f -o -type l | sort; cat a sub/b; [ -x a ] && echo runs; readlink link'
"$PX" box copy in/a c:/tmp/renamed
"$PX" box copy in/a c:relative
"$PX" box exec c -- cat /tmp/renamed /home/sandbox/relative
"$PX" box exec c -c 'cd /tmp/in; ln a hard; ln -s /etc/shadow l; mkfifo p; mkdir set; : >set/x'
"$PX" box copy c:/tmp/in out 2>err
cat err
find out | sort
cat out/a out/sub/b out/hard
"$PX" box copy c:/tmp/renamed out
"$PX" box copy c:/tmp/renamed new
cat out/renamed new
"$PX" box exec c -c 'echo changed >/tmp/renamed'
"$PX" box copy c:/tmp/renamed new
cat new
says "$PX" box copy c:/tmp/in out/sub/b
says "$PX" box copy c:/tmp/in .
mkdir in2 && "$PX" box copy c:/tmp/in in2 2>/dev/null
says "$PX" box copy c:/tmp/in in2
ls -A in2
says "$PX" box copy c:/nosuch .
says "$PX" box copy c:/tmp/in/l .
says "$PX" box copy c:/ .
says "$PX" box copy c:/tmp/in /nosuch/dir/x
says "$PX" box copy nosuch c:/tmp
says "$PX" box copy /dev/null c:/tmp
says "$PX" box copy in c:/proc
says "$PX" box copy in c:/nosuch/dir
says "$PX" box copy --max-size 3 c:/tmp/in small
"$PX" --json box copy c:/tmp/renamed again
ls | sort
