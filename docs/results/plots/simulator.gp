load "plots/common.gp"
set output "plots/simulator.svg"
set xlabel "events pending"
set ylabel "million events a second"
set logscale x
set xrange [500:2000000]; set yrange [0:25]
set key bottom left
plot "data/simulator.dat" using 1:2:3:4 with yerrorbars pt 7 title "tandem-sim", 6 lc rgb "#999999" title "goal at 100,000"
