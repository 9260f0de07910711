import java.sql.*;
import java.util.*;

/** What DBeaver, Metabase and DataGrip do through JDBC: a line for each thing, `ok` or `FAIL` before it. */
public class Programs {
  interface Work {
    Object go() throws Exception;
  }

  static void tried(String name, Work work) {
    try {
      System.out.println("ok " + name + ": " + work.go());
    } catch (Throwable error) {
      System.out.println("FAIL " + name + ": " + String.valueOf(error.getMessage()).replace("\n", " "));
    }
  }

  static int rows(ResultSet found) throws Exception {
    int columns = found.getMetaData().getColumnCount(), count = 0;
    while (found.next()) {
      for (int i = 1; i <= columns; i++) found.getObject(i);
      count++;
    }
    return count;
  }

  static String state(Statement statement, String sql) throws Exception {
    try {
      statement.execute(sql);
      return "none";
    } catch (SQLException error) {
      return error.getSQLState() + " " + error.getMessage().replace("\n", " ");
    }
  }

  public static void main(String[] given) throws Exception {
    Properties who = new Properties();
    who.put("user", given[1]);
    who.put("password", given[2]);
    Connection c = DriverManager.getConnection("jdbc:postgresql://127.0.0.1:" + given[0] + "/understudy", who);
    DatabaseMetaData m = c.getMetaData();
    String[] kinds = {"TABLE", "VIEW", "PARTITIONED TABLE", "FOREIGN TABLE", "MATERIALIZED VIEW"};
    tried("product", () -> m.getDatabaseProductName() + " " + m.getDatabaseProductVersion());
    tried("catalogs", () -> rows(m.getCatalogs()));
    tried("schemas", () -> rows(m.getSchemas()));
    tried("table types", () -> rows(m.getTableTypes()) > 3);
    tried("tables", () -> rows(m.getTables(null, "public", "%", kinds)));
    tried("synthetic tables", () -> rows(m.getTables(null, "synthetic", "%", kinds)));
    tried("all tables", () -> rows(m.getTables(null, null, "%", null)) > 50);
    tried("columns", () -> rows(m.getColumns(null, "public", "town", "%")));
    tried("primary keys", () -> rows(m.getPrimaryKeys(null, "public", "town")));
    tried("imported keys", () -> rows(m.getImportedKeys(null, "public", "town")));
    tried("exported keys", () -> rows(m.getExportedKeys(null, "public", "town")));
    tried("indexes", () -> rows(m.getIndexInfo(null, "public", "town", false, true)));
    tried("privileges", () -> rows(m.getTablePrivileges(null, "public", "town")) > 0);
    tried("column privileges", () -> rows(m.getColumnPrivileges(null, "public", "town", "%")) > 0);
    tried("types", () -> rows(m.getTypeInfo()) > 10);
    tried("functions", () -> rows(m.getFunctions(null, "public", "%")));
    tried("procedures", () -> rows(m.getProcedures(null, "public", "%")));
    tried("user types", () -> rows(m.getUDTs(null, "public", "%", null)));
    tried("best row", () -> rows(m.getBestRowIdentifier(null, "public", "town", 2, true)));
    tried("keywords", () -> m.getSQLKeywords().length() > 100);
    tried("longest name", () -> m.getMaxTableNameLength());
    tried("isolation", () -> c.getTransactionIsolation() == Connection.TRANSACTION_READ_COMMITTED);
    tried("valid", () -> c.isValid(3));
    tried("schema", () -> c.getSchema());
    String sql = "SELECT sex, count(*) AS n FROM public.town WHERE age < ? AND district = ? AND smoker = ? GROUP BY sex";
    tried("prepared, binary after five", () -> {
      Set<Double> sums = new HashSet<>();
      PreparedStatement s = c.prepareStatement(sql);
      for (int i = 0; i < 9; i++) {
        s.setInt(1, 30);
        s.setString(2, "Inkwharf");
        s.setBoolean(3, true);
        ResultSet r = s.executeQuery();
        double sum = 0;
        while (r.next()) sum += r.getDouble("n");
        sums.add(sum);
      }
      return sums.size();
    });
    tried("date", () -> {
      PreparedStatement s = c.prepareStatement("SELECT count(*) FROM town WHERE moved_in >= ?");
      s.setObject(1, java.time.LocalDate.of(2010, 1, 1));
      ResultSet r = s.executeQuery();
      r.next();
      return r.getDouble(1) > 500;
    });
    tried("described", () -> {
      ResultSetMetaData d = c.prepareStatement("SELECT sex, count(*) AS n, avg(age) FROM town GROUP BY sex").getMetaData();
      return d.getColumnTypeName(1) + " " + d.getColumnTypeName(2) + " " + d.getColumnLabel(3);
    });
    tried("warnings", () -> {
      Statement s = c.createStatement();
      rows(s.executeQuery("SELECT sex, count(*) AS n FROM town GROUP BY sex"));
      return s.getWarnings().getMessage().startsWith("source");
    });
    tried("metabase", () -> rows(c.createStatement().executeQuery(
        "-- Metabase:: userID: 1 queryType: MBQL queryHash: abc\nSELECT \"public\".\"town\".\"sex\" AS \"sex\", "
            + "COUNT(*) AS \"count\" FROM \"public\".\"town\" GROUP BY \"public\".\"town\".\"sex\" "
            + "ORDER BY \"public\".\"town\".\"sex\" ASC")) >= 2);
    c.setAutoCommit(false);
    tried("fetch size", () -> {
      Statement s = c.createStatement();
      s.setFetchSize(2);
      return rows(s.executeQuery("SELECT district, count(*) FROM town GROUP BY district")) >= 4;
    });
    tried("refused", () -> {
      String told = state(c.createStatement(), "SELECT max(age) FROM town");
      c.rollback();
      return told;
    });
    tried("read only", () -> {
      String told = state(c.createStatement(), "CREATE TABLE x (a int)");
      c.rollback();
      return told.substring(0, 5);
    });
    c.commit();
    c.close();
  }
}
