"""TEMPORARY."""

from understudy.server.pg.routing import parsed


class PlainCatalog:
    def __init__(self, desk):
        self.desk = desk

    def describe(self, sql, user, settings):
        return self.desk.describe(parsed(sql))

    def answer(self, sql, user, settings):
        return self.desk.run(parsed(sql))
