load "plots/common.gp"
set output "plots/demo.svg"
set ylabel "time, share of sequential"
set yrange [0:2]
set style data histogram
set style fill solid 0.8
set boxwidth 0.9
plot "data/demo.dat" using 2:xtic(1) title "half of a step on the host", "" using 3 title "a tenth on the host"
