"""Table 6 of Demšar, Statistical Comparisons of Classifiers over Multiple Data Sets, JMLR 7 (2006): AUC on 14 sets.

The paper ranks C4.5+cf before C4.5+m+cf on the thirteenth set, where both print as 0.975.
"""

import pandas as pd

NAMES = ("C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf")
AUC = pd.DataFrame(
    {
        NAMES[0]: [763, 599, 954, 628, 882, 936, 661, 583, 775, 1000, 940, 619, 972, 957],
        NAMES[1]: [768, 591, 971, 661, 888, 931, 668, 583, 838, 1000, 962, 666, 981, 978],
        NAMES[2]: [771, 590, 968, 654, 886, 916, 609, 563, 866, 1000, 965, 614, 975.4, 946],
        NAMES[3]: [798, 569, 967, 657, 898, 931, 685, 625, 875, 1000, 962, 669, 975, 970],
    },
    dtype=float,
)
