load "plots/common.gp"
set output "plots/protect.svg"
set xlabel "length of a besteffort kernel, ms"
set ylabel "%"
set logscale x
set yrange [0:105]
set key bottom left
plot "data/protect.dat" using 1:2 with linespoints pt 7 title "steps within 1 %", \
  "" using 1:3 with linespoints pt 5 title "besteffort: share of what is left"
