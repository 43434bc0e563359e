# Find the update, check that its files belong together, and print it. Run by hand, before signing.
set -e
commod debias held_out.csv --model model.skops --label repaid --sensitive group --favorable 1 --direction gains_only --at-least 0.85 --test-size 0.3 --out patch.json --report report.html
commod verify patch.json report.html
commod show patch.json
