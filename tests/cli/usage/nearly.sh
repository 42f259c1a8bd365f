# A word that is nearly right is named; one that is not like any is not.
says() {
    "$@" 2>"$TMP/err" || true
    sed -n '1p;/Did you mean/p' "$TMP/err"
}
says "$PX" exec --tiemout 3 -- true
says "$PX" exec --memroy=1g -- true
says "$PX" exec --zzzzzz -- true
says "$PX" exce -- true
says "$PX" ps
says "$PX" frobnicate
says "$PX" sync --forzen
says "$PX" box strat
says "$PX" box rm x
says "$PX" sandbox lsit
says "$PX" sandbox foo
says "$PX" file raed
says "$PX" task aply t
