-- The views of Postgres' catalog, which DuckDB computes from its tables. pgc holds pg_catalog, inf holds
-- information_schema, and DATABASE stands for the name of the database. Views whose content belongs to a running
-- server, such as its statistics, locks and sessions, are left empty: they would tell one analyst about another.

CREATE VIEW pgc.us_class_acl AS
SELECT a.oid, r.oid AS grantor, a.grantor AS grantor_name, coalesce(g.oid, 0::UINTEGER) AS grantee, CASE WHEN
  a.grantee = '' THEN 'PUBLIC' ELSE a.grantee END AS grantee_name, a.privilege_type, a.is_grantable FROM
  (SELECT oid, string_split(item, '=')[1] AS grantee, string_split(item, '/')[2] AS grantor, CASE letter WHEN
  'r' THEN 'SELECT' WHEN 'a' THEN 'INSERT' WHEN 'w' THEN 'UPDATE' WHEN 'd' THEN 'DELETE' WHEN 'D' THEN
  'TRUNCATE' WHEN 'x' THEN 'REFERENCES' WHEN 't' THEN 'TRIGGER' END AS privilege_type, false AS is_grantable
  FROM (SELECT oid, item, unnest(string_split(string_split(string_split(item, '=')[2], '/')[1], '')) AS letter
  FROM (SELECT oid, unnest(relacl) AS item FROM pgc.pg_class))) a LEFT JOIN pgc.pg_roles g ON g.rolname =
  a.grantee LEFT JOIN pgc.pg_roles r ON r.rolname = a.grantor WHERE a.privilege_type IS NOT NULL;

CREATE VIEW pgc.pg_tables AS
SELECT n.nspname AS schemaname, c.relname AS tablename, u.rolname AS tableowner, t.spcname AS "tablespace",
  c.relhasindex AS hasindexes, c.relhasrules AS hasrules, c.relhastriggers AS hastriggers, c.relrowsecurity AS
  rowsecurity FROM pgc.pg_class c LEFT JOIN pgc.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pgc.pg_roles
  u ON u.oid = c.relowner LEFT JOIN pgc.pg_tablespace t ON t.oid = c.reltablespace WHERE c.relkind IN ('r',
  'p');

CREATE VIEW pgc.pg_views AS
SELECT n.nspname AS schemaname, c.relname AS viewname, u.rolname AS viewowner, NULL::VARCHAR AS definition FROM
  pgc.pg_class c LEFT JOIN pgc.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pgc.pg_roles u ON u.oid =
  c.relowner WHERE c.relkind = 'v';

CREATE VIEW pgc.pg_indexes AS
SELECT n.nspname AS schemaname, c.relname AS tablename, i.relname AS indexname, t.spcname AS "tablespace",
  d.text AS indexdef FROM pgc.pg_index x JOIN pgc.pg_class c ON c.oid = x.indrelid JOIN pgc.pg_class i ON i.oid
  = x.indexrelid LEFT JOIN pgc.pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pgc.pg_tablespace t ON t.oid
  = i.reltablespace LEFT JOIN pgc.us_indexes d ON d.oid = i.oid WHERE c.relkind IN ('r', 'm', 'p') AND
  i.relkind IN ('i', 'I');

CREATE VIEW pgc.pg_user AS
SELECT rolname AS usename, oid AS usesysid, rolcreatedb AS usecreatedb, rolsuper AS usesuper, rolreplication AS
  userepl, rolbypassrls AS usebypassrls, '********' AS passwd, rolvaliduntil AS valuntil, rolconfig AS
  useconfig FROM pgc.pg_roles WHERE rolcanlogin;

CREATE VIEW pgc.pg_group AS
SELECT rolname AS groname, oid AS grosysid, coalesce((SELECT list(m.member) FROM pgc.pg_auth_members m WHERE
  m.roleid = r.oid), []::UINTEGER[]) AS grolist FROM pgc.pg_roles r WHERE NOT rolcanlogin;

CREATE VIEW pgc.pg_stat_all_tables AS
SELECT c.oid AS relid, n.nspname AS schemaname, c.relname, 0::BIGINT AS seq_scan, 0::BIGINT AS seq_tup_read,
  NULL::BIGINT AS idx_scan, NULL::BIGINT AS idx_tup_fetch, 0::BIGINT AS n_tup_ins, 0::BIGINT AS n_tup_upd,
  0::BIGINT AS n_tup_del, 0::BIGINT AS n_tup_hot_upd, 0::BIGINT AS n_live_tup, 0::BIGINT AS n_dead_tup,
  0::BIGINT AS n_mod_since_analyze, 0::BIGINT AS n_ins_since_vacuum, NULL::VARCHAR AS last_vacuum,
  NULL::VARCHAR AS last_autovacuum, NULL::VARCHAR AS last_analyze, NULL::VARCHAR AS last_autoanalyze, 0::BIGINT
  AS vacuum_count, 0::BIGINT AS autovacuum_count, 0::BIGINT AS analyze_count, 0::BIGINT AS autoanalyze_count
  FROM pgc.pg_class c JOIN pgc.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 't', 'm', 'p');

CREATE VIEW pgc.pg_stat_user_tables AS
SELECT c.oid AS relid, n.nspname AS schemaname, c.relname, 0::BIGINT AS seq_scan, 0::BIGINT AS seq_tup_read,
  NULL::BIGINT AS idx_scan, NULL::BIGINT AS idx_tup_fetch, 0::BIGINT AS n_tup_ins, 0::BIGINT AS n_tup_upd,
  0::BIGINT AS n_tup_del, 0::BIGINT AS n_tup_hot_upd, 0::BIGINT AS n_live_tup, 0::BIGINT AS n_dead_tup,
  0::BIGINT AS n_mod_since_analyze, 0::BIGINT AS n_ins_since_vacuum, NULL::VARCHAR AS last_vacuum,
  NULL::VARCHAR AS last_autovacuum, NULL::VARCHAR AS last_analyze, NULL::VARCHAR AS last_autoanalyze, 0::BIGINT
  AS vacuum_count, 0::BIGINT AS autovacuum_count, 0::BIGINT AS analyze_count, 0::BIGINT AS autoanalyze_count
  FROM pgc.pg_class c JOIN pgc.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 't', 'm', 'p')
  AND n.nspname IN ('public', 'synthetic');

CREATE VIEW inf.columns AS
SELECT 'DATABASE' AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, a.attname AS
  column_name, a.attnum::INTEGER AS ordinal_position, NULL::VARCHAR AS column_default, CASE WHEN a.attnotnull
  OR (t.typtype = 'd' AND t.typnotnull) THEN 'NO' ELSE 'YES' END AS is_nullable, CASE WHEN bt.typelem <> 0 AND
  bt.typlen = -1 THEN 'ARRAY' WHEN bn.nspname = 'pg_catalog' THEN f.name ELSE 'USER-DEFINED' END AS data_type,
  CASE WHEN bt.oid IN (1042, 1043) AND typmod <> -1 THEN typmod - 4 END AS character_maximum_length, CASE WHEN
  bt.oid IN (25, 1042, 1043) THEN CASE WHEN typmod = -1 THEN 1073741824 ELSE 4 * (typmod - 4) END END AS
  character_octet_length, CASE bt.oid WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 WHEN 700 THEN 24 WHEN 701
  THEN 53 END AS numeric_precision, CASE WHEN bt.oid IN (21, 23, 20, 700, 701) THEN 2 WHEN bt.oid = 1700 THEN
  10 END AS numeric_precision_radix, CASE WHEN bt.oid IN (21, 23, 20) THEN 0 END AS numeric_scale, CASE WHEN
  bt.oid = 1082 THEN 0 WHEN bt.oid IN (1083, 1114, 1184, 1186, 1266) THEN CASE WHEN typmod = -1 THEN 6 ELSE
  typmod END END AS datetime_precision, NULL::VARCHAR AS interval_type, NULL::INTEGER AS interval_precision,
  NULL::VARCHAR AS character_set_catalog, NULL::VARCHAR AS character_set_schema, NULL::VARCHAR AS
  character_set_name, CASE WHEN co.collname IS NOT NULL THEN 'DATABASE' END AS collation_catalog, CASE WHEN
  co.collname IS NOT NULL THEN 'pg_catalog' END AS collation_schema, co.collname AS collation_name, CASE WHEN
  t.typtype = 'd' THEN 'DATABASE' END AS domain_catalog, CASE WHEN t.typtype = 'd' THEN tn.nspname END AS
  domain_schema, CASE WHEN t.typtype = 'd' THEN t.typname END AS domain_name, 'DATABASE' AS udt_catalog,
  bn.nspname AS udt_schema, bt.typname AS udt_name, NULL::VARCHAR AS scope_catalog, NULL::VARCHAR AS
  scope_schema, NULL::VARCHAR AS scope_name, NULL::INTEGER AS maximum_cardinality, a.attnum::VARCHAR AS
  dtd_identifier, 'NO' AS is_self_referencing, 'NO' AS is_identity, NULL::VARCHAR AS identity_generation,
  NULL::VARCHAR AS identity_start, NULL::VARCHAR AS identity_increment, NULL::VARCHAR AS identity_maximum,
  NULL::VARCHAR AS identity_minimum, 'NO' AS identity_cycle, 'NEVER' AS is_generated, NULL::VARCHAR AS
  generation_expression, CASE WHEN c.relkind IN ('r', 'p') THEN 'YES' ELSE 'NO' END AS is_updatable FROM
  (SELECT *, CASE WHEN a0.atttypid IN (SELECT oid FROM pgc.pg_type WHERE typtype = 'd') THEN (SELECT typtypmod
  FROM pgc.pg_type WHERE oid = a0.atttypid) ELSE a0.atttypmod END AS typmod FROM pgc.pg_attribute a0) a JOIN
  pgc.pg_class c ON c.oid = a.attrelid JOIN pgc.pg_namespace n ON n.oid = c.relnamespace JOIN pgc.pg_type t ON
  t.oid = a.atttypid JOIN pgc.pg_namespace tn ON tn.oid = t.typnamespace JOIN pgc.pg_type bt ON bt.oid = CASE
  WHEN t.typtype = 'd' THEN t.typbasetype ELSE t.oid END JOIN pgc.pg_namespace bn ON bn.oid = bt.typnamespace
  JOIN pgc.us_formats f ON f.oid = bt.oid LEFT JOIN pgc.pg_collation co ON co.oid = a.attcollation AND
  co.collname <> 'default' WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'v', 'f', 'p') AND
  c.oid IN (SELECT oid FROM pgc.us_class_acl WHERE grantee = 0);

CREATE VIEW inf.tables AS
SELECT 'DATABASE' AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, CASE c.relkind WHEN 'v'
  THEN 'VIEW' WHEN 'f' THEN 'FOREIGN' ELSE 'BASE TABLE' END AS table_type, NULL::VARCHAR AS
  self_referencing_column_name, NULL::VARCHAR AS reference_generation, NULL::VARCHAR AS
  user_defined_type_catalog, NULL::VARCHAR AS user_defined_type_schema, NULL::VARCHAR AS
  user_defined_type_name, CASE WHEN c.relkind IN ('r', 'p') THEN 'YES' ELSE 'NO' END AS is_insertable_into,
  'NO' AS is_typed, NULL::VARCHAR AS commit_action FROM pgc.pg_class c JOIN pgc.pg_namespace n ON n.oid =
  c.relnamespace WHERE c.relkind IN ('r', 'v', 'f', 'p') AND c.oid IN (SELECT oid FROM pgc.us_class_acl WHERE
  grantee = 0);

CREATE VIEW inf.schemata AS
SELECT 'DATABASE' AS catalog_name, n.nspname AS schema_name, u.rolname AS schema_owner, NULL::VARCHAR AS
  default_character_set_catalog, NULL::VARCHAR AS default_character_set_schema, NULL::VARCHAR AS
  default_character_set_name, NULL::VARCHAR AS sql_path FROM pgc.pg_namespace n JOIN pgc.pg_roles u ON u.oid =
  n.nspowner WHERE n.nspacl IS NOT NULL;

CREATE VIEW inf.views AS
SELECT 'DATABASE' AS table_catalog, n.nspname AS table_schema, c.relname AS table_name, NULL::VARCHAR AS
  view_definition, 'NONE' AS check_option, 'NO' AS is_updatable, 'NO' AS is_insertable_into, 'NO' AS
  is_trigger_updatable, 'NO' AS is_trigger_deletable, 'NO' AS is_trigger_insertable_into FROM pgc.pg_class c
  JOIN pgc.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind = 'v' AND c.oid IN (SELECT oid FROM
  pgc.us_class_acl WHERE grantee = 0);

CREATE VIEW inf.table_privileges AS
SELECT a.grantor_name AS grantor, a.grantee_name AS grantee, 'DATABASE' AS table_catalog, n.nspname AS
  table_schema, c.relname AS table_name, a.privilege_type, 'NO' AS is_grantable, CASE WHEN a.privilege_type =
  'SELECT' THEN 'YES' ELSE 'NO' END AS with_hierarchy FROM pgc.us_class_acl a JOIN pgc.pg_class c ON c.oid =
  a.oid JOIN pgc.pg_namespace n ON n.oid = c.relnamespace WHERE c.relkind IN ('r', 'v', 'f', 'p') AND a.grantee
  = 0;

CREATE VIEW inf.column_privileges AS
SELECT g.grantor_name AS grantor, g.grantee_name AS grantee, 'DATABASE' AS table_catalog, n.nspname AS
  table_schema, c.relname AS table_name, a.attname AS column_name, g.privilege_type, 'NO' AS is_grantable FROM
  pgc.us_class_acl g JOIN pgc.pg_class c ON c.oid = g.oid JOIN pgc.pg_namespace n ON n.oid = c.relnamespace
  JOIN pgc.pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped WHERE c.relkind IN
  ('r', 'v', 'f', 'p') AND g.privilege_type IN ('SELECT', 'INSERT', 'UPDATE', 'REFERENCES') AND g.grantee = 0;

CREATE VIEW inf.information_schema_catalog_name AS
SELECT 'DATABASE' AS catalog_name;

CREATE VIEW inf.enabled_roles AS
SELECT rolname AS role_name FROM pgc.pg_roles WHERE rolname IS NULL;

CREATE VIEW inf.character_sets AS
SELECT NULL::VARCHAR AS character_set_catalog, NULL::VARCHAR AS character_set_schema, 'UTF8' AS
  character_set_name, 'UCS' AS character_repertoire, 'UTF8' AS form_of_use, 'DATABASE' AS
  default_collate_catalog, 'pg_catalog' AS default_collate_schema, 'default' AS default_collate_name;

CREATE VIEW inf.collations AS
SELECT 'DATABASE' AS collation_catalog, 'pg_catalog' AS collation_schema, collname AS collation_name, 'NO PAD'
  AS pad_attribute FROM pgc.pg_collation WHERE collencoding IN (-1, 6);
