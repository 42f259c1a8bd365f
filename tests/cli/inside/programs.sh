# What people run in it.
need python3
"$PX" exec -- python3 -c 'import os, json, tempfile, multiprocessing as m
with m.Pool(2) as p: print(sum(p.map(abs, range(-10, 10))))
with tempfile.NamedTemporaryFile() as f: f.write(b"x"); print(os.path.dirname(f.name))'
"$PX" exec -c 'perl -e "print 6 * 7, qq(\n)"; echo "b a" | tr " " "\n" | sort | xargs echo; date +%Y | grep -c 20'
