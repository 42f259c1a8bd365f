# Words that do not fit.
export PX_HOME=$TMP/home
mkdir -m 700 "$PX_HOME"
for words in 'list x' 'list --nosuch' 'status x' 'status --verify=yes' 'gc x' 'gc --min-age' 'gc --min-age soon' 'gc --max-size=many' 'clean x' 'clean --all'; do
    echo "px sandbox $words"
    says "$PX" sandbox $words
done
for verb in list status gc clean; do "$PX" sandbox $verb --help | cmp - <("$PX" help sandbox); done
ls "$PX_HOME/store" 2>/dev/null | wc -l
