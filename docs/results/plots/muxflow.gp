load "plots/common.gp"
set terminal svg size 760,320 font "sans-serif,12" background "white"
set output "plots/muxflow.svg"
set style data histograms
set style histogram clustered gap 1
set style fill solid 0.8 border -1
set yrange [0:*]
set bmargin 4
set xrange [-0.7:4.7]
label(way) = way eq "time-sharing" ? "time-\nsharing" : way
set multiplot layout 1, 2
unset key
set title "P99 of the service, ms"
plot "data/muxflow.dat" using 3:xtic(label(strcol(1)))
set key top right reverse Left
set title "in each second"
set yrange [0:1.3]
plot "data/muxflow.dat" using 5:xtic(label(strcol(1))) title "oversold, s of work" lc 2, \
  "" using 6 title "GPU in use, s" lc 3
unset multiplot
