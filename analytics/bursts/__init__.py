"""Burst feasibility: how much the inputs of applications that share nodes can grow before something drops.

A model becomes rows (`constraints`) of one linear program that stays warm between questions (`solver`); from it
come how much can be taken (`headroom`, `single`) and exact maps (`region`). The program is the truth. `index` is
BARRE's point index, `cuts` a cache of what the program said before, with bounds that certify it. A solution becomes
routing that needs no change when a burst comes (`assignment`), and `simulate` plays bursts against it.

Source: Drougas and Kalogeraki, *Accommodating Bursts in Distributed Stream Processing Systems*, IPDPS 2009.
"""
