# One row in full, by any of its names; the list; a code that does not exist.
"$PX" explain PX013
for name in px13 13 PX013; do "$PX" explain $name | head -1; done
"$PX" explain | grep -c '^PX[0-9][0-9][0-9]  .'
says "$PX" explain PX999
says "$PX" explain nonsense
