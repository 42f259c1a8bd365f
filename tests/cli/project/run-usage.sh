# Words that px run and px test do not have.
cd "$TMP"
says "$PX" run
says "$PX" run --nosuch app.py
says "$PX" run --memory 1g app.py
says "$PX" run --auto-add app.py
says "$PX" run --read-only app.py
says "$PX" run --sandbox --base host app.py
says "$PX" run --sandbox --preset default app.py
says "$PX" run --plan app.py
says "$PX" run -c 'echo'
says "$PX" explain run
("$PX" --json run --sandbox -i x || true) | grep -c PX001
says "$PX" run app.py | sed "s,$TMP,TMP,"
says "$PX" test | sed "s,$TMP,TMP,"
for verb in run test; do "$PX" $verb --help | grep -c 'Without --sandbox .* on this machine, as you, and nothing bounds'; done
