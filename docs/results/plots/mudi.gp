load "plots/common.gp"
set output "plots/mudi.svg"
set style data histograms
set style histogram clustered gap 2
set style fill solid 0.8 border -1
set ylabel "requests over the objective, %"
set yrange [0:*]
set y2label "training, seconds a second"
set y2range [0:1]
set y2tics 0, 0.2, 1
set key top right
plot "data/mudi.dat" using ($2 * 100):xtic(1) title "violations", \
  "" using 4 axes x1y2 title "training"
