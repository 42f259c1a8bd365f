# Where a store cannot be.
home=$TMP/home
mkdir -m 700 "$home"
PX_HOME=relative says "$PX" sandbox list
PX_HOME= HOME= says "$PX" sandbox list
PX_HOME=$TMP/no/such says "$PX" sandbox list 2>&1 | sed "s,$TMP,TMP,"
export PX_HOME=$home
"$PX" sandbox list
chmod 755 "$home/store"
says "$PX" sandbox list | sed "s,$TMP,TMP,"
chmod 700 "$home/store"
echo 'px-store 2' >"$home/store/version"
says "$PX" sandbox gc | sed "s,$TMP,TMP,"
"$PX" --json sandbox gc 2>&1 | sed "s,$TMP,TMP," | grep -o '"code":"PX[0-9]*"' || true
echo 'px-store 1' >"$home/store/version"
mv "$home/store/tmp" "$home/away"
ln -s "$home/away" "$home/store/tmp"
says "$PX" sandbox list | sed "s,$TMP,TMP,"
rm "$home/store/tmp"
"$PX" sandbox list
