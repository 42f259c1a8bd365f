word=$(unique)
try "$PX" exec --timeout 300ms -c "sleep $word & kill -STOP \$!; kill -STOP \$\$" 2>/dev/null
until_gone "$word"
