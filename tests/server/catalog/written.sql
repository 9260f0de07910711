-- Statements about the catalog in the manner of programs that do not run in the tests, and of people at a prompt: they ask for
-- what such programs ask for when they connect, with the same functions, casts and joins. One statement a line; {town} is a number.

-- DBeaver
SELECT n.oid, n.*, d.description FROM pg_catalog.pg_namespace n LEFT JOIN pg_catalog.pg_description d ON d.objoid = n.oid AND d.objsubid = 0 AND d.classoid = 'pg_namespace'::regclass ORDER BY n.nspname;
SELECT current_schema(), session_user;
SELECT c.oid, c.relname, c.relkind, d.description, pg_catalog.pg_get_expr(c.relpartbound, c.oid) AS bounds, pg_catalog.pg_get_partkeydef(c.oid) AS part FROM pg_catalog.pg_class c LEFT OUTER JOIN pg_catalog.pg_description d ON d.objoid = c.oid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass WHERE c.relnamespace = 2200 AND c.relkind NOT IN ('i', 'I', 'c');
SELECT c.relname, a.*, pg_catalog.pg_get_expr(ad.adbin, ad.adrelid, true) AS def_value, dsc.description, dep.objid FROM pg_catalog.pg_attribute a INNER JOIN pg_catalog.pg_class c ON (a.attrelid = c.oid) LEFT OUTER JOIN pg_catalog.pg_attrdef ad ON (a.attrelid = ad.adrelid AND a.attnum = ad.adnum) LEFT OUTER JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid) LEFT OUTER JOIN pg_depend dep ON dep.refobjid = a.attrelid AND dep.deptype = 'i' AND dep.refobjsubid = a.attnum AND dep.classid = dep.refclassid WHERE NOT a.attisdropped AND c.oid = {town} ORDER BY a.attnum;
SELECT i.*, i.indkey AS keys, c.relname, c.relnamespace, c.relam, pg_catalog.pg_get_expr(i.indpred, i.indrelid) AS pred_expr FROM pg_catalog.pg_index i INNER JOIN pg_catalog.pg_class c ON c.oid = i.indexrelid WHERE i.indrelid = {town} ORDER BY c.relname;
SELECT x.oid, x.*, s.schemaname FROM pg_catalog.pg_event_trigger x LEFT JOIN pg_catalog.pg_tables s ON false;
SELECT * FROM pg_catalog.pg_enum;
SELECT a.oid, a.rolname, a.rolsuper, ARRAY(SELECT b.rolname FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles b ON m.roleid = b.oid WHERE m.member = a.oid) AS memberof FROM pg_catalog.pg_roles a WHERE a.rolname !~ '^pg_' ORDER BY a.rolname;
SELECT sum(pg_catalog.pg_total_relation_size(c.oid)) IS NOT NULL AS known FROM pg_class c WHERE c.oid = 0;
SELECT nspname, relname, has_table_privilege(c.oid, 'SELECT') AS readable FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IN ('public', 'synthetic') ORDER BY 1, 2;

-- Metabase
SELECT "n"."nspname" AS "schema", "c"."relname" AS "name", CASE "c"."relkind" WHEN 'r' THEN 'TABLE' WHEN 'p' THEN 'PARTITIONED TABLE' WHEN 'v' THEN 'VIEW' WHEN 'f' THEN 'FOREIGN TABLE' WHEN 'm' THEN 'MATERIALIZED VIEW' ELSE NULL END AS "type", "d"."description" AS "description", "stat"."n_live_tup" AS "estimated_row_count" FROM "pg_catalog"."pg_class" AS "c" INNER JOIN "pg_catalog"."pg_namespace" AS "n" ON "c"."relnamespace" = "n"."oid" LEFT JOIN "pg_catalog"."pg_description" AS "d" ON ("c"."oid" = "d"."objoid") AND ("d"."objsubid" = 0) AND ("d"."classoid" = 'pg_class'::regclass) LEFT JOIN "pg_stat_user_tables" AS "stat" ON ("n"."nspname" = "stat"."schemaname") AND ("c"."relname" = "stat"."relname") WHERE ("c"."relnamespace" = "n"."oid") AND ("n"."nspname" !~ '^information_schema|catalog_history|pg_') AND (c.relkind in ('r', 'p', 'v', 'f', 'm')) AND ("n"."nspname" IN ('public', 'synthetic')) ORDER BY "type" ASC, "schema" ASC, "name" ASC;
SELECT "c"."column_name" AS "name", CASE WHEN "c"."udt_schema" IN ('public', 'pg_catalog') THEN FORMAT('%s', "c"."udt_name") ELSE FORMAT('"%s"."%s"', "c"."udt_schema", "c"."udt_name") END AS "database-type", "c"."ordinal_position" - 1 AS "database-position", "c"."table_schema" AS "table-schema", "c"."table_name" AS "table-name", "pk"."column_name" IS NOT NULL AS "pk?", COL_DESCRIPTION(CAST(CAST(FORMAT('%I.%I', CAST("c"."table_schema" AS TEXT), CAST("c"."table_name" AS TEXT)) AS REGCLASS) AS OID), "c"."ordinal_position") AS "field-comment", ("column_default" IS NULL) AND ("is_nullable" = 'NO') AS "database-required" FROM "information_schema"."columns" AS "c" LEFT JOIN (SELECT "tc"."table_schema", "tc"."table_name", "kc"."column_name" FROM "information_schema"."table_constraints" AS "tc" INNER JOIN "information_schema"."key_column_usage" AS "kc" ON ("tc"."constraint_name" = "kc"."constraint_name") AND ("tc"."table_schema" = "kc"."table_schema") WHERE "tc"."constraint_type" = 'PRIMARY KEY') AS "pk" ON ("c"."table_schema" = "pk"."table_schema") AND ("c"."table_name" = "pk"."table_name") AND ("c"."column_name" = "pk"."column_name") WHERE c.table_schema !~ '^information_schema|pg_' AND "c"."table_schema" IN ('public') ORDER BY "table-schema" ASC, "table-name" ASC, "database-position" ASC;
SELECT fk_ns.nspname AS "fk-table-schema", fk_table.relname AS "fk-table-name" FROM pg_constraint AS c JOIN pg_class AS fk_table ON c.conrelid = fk_table.oid JOIN pg_namespace AS fk_ns ON c.connamespace = fk_ns.oid WHERE fk_ns.nspname !~ '^information_schema|pg_' AND c.contype = 'f'::char ORDER BY 1, 2;
SELECT t.typname AS enum_type, e.enumlabel FROM pg_type t JOIN pg_enum e ON t.oid = e.enumtypid ORDER BY e.enumsortorder;
with table_privileges as (select NULL as role, t.schemaname as schema, t.objectname as table, pg_catalog.has_any_column_privilege(current_user, '"' || replace(t.schemaname, '"', '""') || '"' || '.' || '"' || replace(t.objectname, '"', '""') || '"', 'update') as update, pg_catalog.has_table_privilege(current_user, '"' || t.schemaname || '"."' || t.objectname || '"', 'SELECT') as select from (select schemaname, tablename as objectname from pg_catalog.pg_tables union select schemaname, viewname as objectname from pg_catalog.pg_views) t where t.schemaname !~ '^pg_' and t.schemaname <> 'information_schema' and pg_catalog.has_schema_privilege(current_user, t.schemaname, 'usage')) select t.* from table_privileges t order by 2, 3;
SELECT schema_name FROM information_schema.schemata WHERE schema_name <> 'x' ORDER BY 1;

-- Grafana
SELECT quote_ident(table_name) AS "table" FROM information_schema.tables WHERE quote_ident(table_schema) NOT IN ('information_schema', 'pg_catalog', 'pg_toast') AND quote_ident(table_schema) IN (SELECT CASE WHEN trim(s[i]) = '"$user"' THEN user ELSE trim(s[i]) END FROM generate_series(array_lower(string_to_array(current_setting('search_path'), ','), 1), array_upper(string_to_array(current_setting('search_path'), ','), 1)) AS i, string_to_array(current_setting('search_path'), ',') s);
SELECT quote_ident(column_name) AS "column", data_type AS "type" FROM information_schema.columns WHERE quote_ident(table_name) = 'town' ORDER BY 1;
SELECT current_setting('server_version_num')::int / 100 > 900 AS version;
SELECT extname FROM pg_extension WHERE extname = 'timescaledb';
SELECT 1 AS "test";

-- pgAdmin
SELECT db.oid AS did, db.datname, db.datallowconn, pg_catalog.pg_encoding_to_char(db.encoding) AS serverencoding, has_database_privilege(db.oid, 'CREATE') AS cancreate, datistemplate FROM pg_catalog.pg_database db WHERE db.datname = current_database();
SELECT roles.oid AS id, roles.rolname AS name, roles.rolsuper AS is_superuser, CASE WHEN roles.rolsuper THEN true ELSE roles.rolcreaterole END AS can_create_role, CASE WHEN 'pg_signal_backend' = ANY(ARRAY(SELECT pg_catalog.pg_roles.rolname FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles ON m.roleid = pg_catalog.pg_roles.oid WHERE m.member = roles.oid)) THEN true ELSE false END AS can_signal FROM pg_catalog.pg_roles AS roles WHERE rolname = current_user;
SELECT nsp.oid, nsp.nspname AS name, pg_catalog.has_schema_privilege(nsp.oid, 'CREATE') AS can_create, pg_catalog.has_schema_privilege(nsp.oid, 'USAGE') AS has_usage, des.description FROM pg_catalog.pg_namespace nsp LEFT OUTER JOIN pg_catalog.pg_description des ON (des.objoid = nsp.oid AND des.classoid = 'pg_namespace'::regclass) WHERE nspname NOT LIKE E'pg\\_%' AND nspname <> 'information_schema' ORDER BY nspname;
SELECT rel.oid, rel.relname AS name, (SELECT count(*) FROM pg_catalog.pg_trigger WHERE tgrelid = rel.oid AND tgisinternal = FALSE) AS triggercount, (SELECT count(1) FROM pg_catalog.pg_inherits WHERE inhrelid = rel.oid LIMIT 1) AS is_inherits, rel.reltuples::bigint AS rows_estimate FROM pg_catalog.pg_class rel WHERE rel.relkind IN ('r', 's', 't', 'p') AND rel.relnamespace = 2200 AND NOT rel.relispartition ORDER BY rel.relname;
SELECT att.attname AS name, att.atttypid, pg_catalog.format_type(ty.oid, NULL) AS typname, ty.typname AS elemtype, ns.nspname AS typnspname, att.attnotnull AS not_null, (SELECT 1 FROM pg_catalog.pg_type WHERE typname = ty.typname OFFSET 1) > 0 AS isdup, CASE WHEN length(coll.collname::text) > 0 AND length(nspc.nspname::text) > 0 THEN pg_catalog.concat(pg_catalog.quote_ident(nspc.nspname), '.', pg_catalog.quote_ident(coll.collname)) ELSE '' END AS collspcname FROM pg_catalog.pg_attribute att JOIN pg_catalog.pg_type ty ON ty.oid = atttypid JOIN pg_catalog.pg_namespace ns ON ns.oid = ty.typnamespace LEFT OUTER JOIN pg_catalog.pg_collation coll ON att.attcollation = coll.oid LEFT OUTER JOIN pg_catalog.pg_namespace nspc ON coll.collnamespace = nspc.oid WHERE att.attrelid = {town}::oid AND att.attnum > 0 AND att.attisdropped IS FALSE ORDER BY att.attnum;
SELECT nspname FROM pg_catalog.pg_namespace n, pg_class c WHERE c.relnamespace = n.oid AND c.oid = 'public.town'::regclass;
SELECT CASE WHEN usesuper THEN pg_catalog.pg_is_in_recovery() ELSE FALSE END AS inrecovery, CASE WHEN usesuper AND pg_catalog.pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE FALSE END AS isreplaypaused FROM pg_catalog.pg_user WHERE usename = current_user;
SELECT 'session_stats' AS chart_name, pg_catalog.row_number() OVER () > 0 AS data FROM pg_catalog.pg_settings WHERE name = 'max_connections';
SELECT gss_authenticated, encrypted FROM pg_catalog.pg_stat_gssapi WHERE pid = -1;

-- Superset
SELECT nspname FROM pg_namespace WHERE nspname NOT LIKE 'pg_%' ORDER BY nspname;
SELECT c.relname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname = 'public' AND c.relkind in ('r', 'p');
SELECT c.oid FROM pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace WHERE (pg_catalog.pg_table_is_visible(c.oid)) AND c.relname = 'town' AND c.relkind in ('r', 'v', 'm', 'f', 'p');
SELECT a.attname, pg_catalog.format_type(a.atttypid, a.atttypmod), (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid) FROM pg_catalog.pg_attrdef d WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef) AS DEFAULT, a.attnotnull, a.attrelid as table_oid, pgd.description as comment, a.attgenerated as generated FROM pg_catalog.pg_attribute a LEFT JOIN pg_catalog.pg_description pgd ON (pgd.objoid = a.attrelid AND pgd.objsubid = a.attnum) WHERE a.attrelid = {town} AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
SELECT pgd.description as table_comment FROM pg_catalog.pg_description pgd WHERE pgd.objsubid = 0 AND pgd.objoid = {town};

-- Tableau, Power BI, Qlik
select TABLE_SCHEMA, TABLE_NAME, TABLE_TYPE from INFORMATION_SCHEMA.tables where TABLE_SCHEMA not in ('information_schema', 'pg_catalog') order by TABLE_SCHEMA, TABLE_NAME;
select COLUMN_NAME, ORDINAL_POSITION, IS_NULLABLE, case when (data_type like '%unsigned%') then DATA_TYPE || ' unsigned' else DATA_TYPE end as DATA_TYPE from INFORMATION_SCHEMA.columns where TABLE_SCHEMA = 'public' and TABLE_NAME = 'town' order by TABLE_SCHEMA, TABLE_NAME, ORDINAL_POSITION;
select character_set_name from INFORMATION_SCHEMA.character_sets;
select pkcol.COLUMN_NAME as PK_COLUMN_NAME, fkcon.CONSTRAINT_NAME as FK_NAME from (select distinct constraint_catalog, constraint_schema, unique_constraint_schema, constraint_name, unique_constraint_name from INFORMATION_SCHEMA.referential_constraints) fkcon inner join INFORMATION_SCHEMA.key_column_usage pkcol on fkcon.UNIQUE_CONSTRAINT_SCHEMA = pkcol.CONSTRAINT_SCHEMA order by 1;
SELECT NULL, current_database()::information_schema.sql_identifier AS cat, typname FROM pg_type WHERE oid = 23;
select s.oid, s.typname, e.typdelim from pg_catalog.pg_type s left join pg_catalog.pg_type e on e.oid = s.typelem where s.typname in ('_int4', 'date', '_text') order by 1;
SELECT grantee, privilege_type, is_grantable FROM information_schema.table_privileges WHERE table_name = 'town';
SELECT column_name, privilege_type FROM information_schema.column_privileges WHERE table_name = 'town' ORDER BY 1;

-- prompt
SELECT 1 + 1, 'x' || 'y', NULL, true, 2.5, -3, 'a' = 'b';
SELECT current_database(), current_schema(), current_schemas(true), current_user, session_user, user;
SELECT 'town'::regclass, 'town'::regclass::oid = {town}, 'pg_class'::regclass::int, 'synthetic.town_2024'::regclass::text, 1259::regclass, 23::regtype, 'integer'::regtype, 'int4'::regtype::oid;
SELECT to_regclass('nothing'), to_regclass('town'), to_regtype('integer'), to_regtype('nothing');
SELECT format_type(23, -1), format_type(1043, 14), format_type(0, NULL), format_type(NULL, NULL), format_type(1184, 3);
SELECT array_to_string(ARRAY['a', NULL, 'c'], ','), array_upper(ARRAY[1, 2, 3], 1), ARRAY['a', 'b'], ('{x,"y z"}'::text[])[2], string_to_array('a,b', ',');
SELECT quote_ident('a b'), quote_ident('abc'), quote_ident('select'), quote_literal('it''s');
SELECT unnest(ARRAY[3, 1, 2]) AS n ORDER BY n DESC;
SELECT generate_series(1, 3);
SELECT i, i * 2 AS twice FROM generate_series(1, 4) AS i WHERE i % 2 = 0;
SELECT x, n FROM unnest(ARRAY['p', 'q']) WITH ORDINALITY AS t(x, n);
SELECT relname, relkind, reltuples, relacl, reloptions FROM pg_class WHERE oid = 'town'::regclass;
SELECT attname, atttypid::regtype, attnum, attnotnull FROM pg_attribute WHERE attrelid = 'town'::regclass AND attnum > 0 ORDER BY attnum;
SELECT typname, typinput, typcategory, typelem::regtype FROM pg_type WHERE typname IN ('int4', '_int4', 'name', 'town') ORDER BY 1;
SELECT obj_description('town'::regclass), obj_description('town'::regclass, 'pg_class'), col_description('town'::regclass, 1), col_description('town'::regclass, 2);
SELECT has_table_privilege('town', 'select'), has_table_privilege('town', 'insert'), has_schema_privilege(current_user, 'public', 'usage'), has_schema_privilege('public', 'create'), has_column_privilege('town', 'age', 'SELECT');
SELECT indkey, indclass, indkey[0] FROM pg_index WHERE indexrelid = 'pg_class_oid_index'::regclass;
SELECT proname, proargtypes, prorettype::regtype, pg_get_function_arguments(oid) FROM pg_proc WHERE proname = 'lower' ORDER BY oid;
SELECT nspname, nspowner::regrole, nspacl FROM pg_namespace ORDER BY 1;
SELECT count(*), count(DISTINCT relkind), min(relname), max(relnatts) FROM pg_class WHERE relnamespace = 2200;
SELECT relkind, count(*) FROM pg_class WHERE relnamespace = 'pg_catalog'::regnamespace GROUP BY relkind ORDER BY 1;
WITH RECURSIVE t(n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT sum(n) FROM t;
SELECT CASE WHEN relkind = 'r' THEN 'table' ELSE relname END FROM pg_class WHERE oid IN ({town}, 1259) ORDER BY 1;
SELECT coalesce(NULL, 'x'), nullif(1, 1), greatest(1, 2), length('abc'), upper('a'), substring('hello' from 2 for 3), position('l' in 'hello'), replace('a.b', '.', '-'), split_part('a/b', '/', 2);
SELECT '1'::int, '2.5'::float8, 't'::bool, '2020-01-02'::date, 3::text, 7::int2, 'x'::name, 'r'::"char", 12::oid, '{1,2}'::int[];
SELECT c.relname FROM pg_class c WHERE c.relname = ANY (ARRAY['town', 'x']) AND c.relkind = ANY('{r,v}');
SELECT * FROM pg_catalog.pg_tables WHERE schemaname = 'synthetic';
SELECT catalog_name, schema_name, schema_owner FROM information_schema.schemata ORDER BY 2;
SELECT table_name, column_name, data_type, udt_name, is_nullable, numeric_precision, numeric_scale, datetime_precision, character_octet_length, collation_name FROM information_schema.columns WHERE table_schema IN ('public', 'synthetic') ORDER BY 1, ordinal_position;
SELECT name, setting FROM pg_settings WHERE name IN ('standard_conforming_strings', 'max_index_keys') ORDER BY 1;
SELECT current_setting('client_encoding'), current_setting('nothing.there', true);
SELECT tableoid::regclass, relname FROM pg_class WHERE oid = {town};
SELECT pg_typeof(1), pg_typeof('x'::text), pg_typeof(relname) FROM pg_class LIMIT 1;
SELECT (SELECT relname FROM pg_class WHERE oid = {town}), EXISTS (SELECT 1 FROM pg_class), ARRAY(SELECT attname FROM pg_attribute WHERE attrelid = {town} AND attnum > 0 ORDER BY attnum);
SELECT relname FROM pg_class WHERE relname ILIKE 'TOW_' OR relname SIMILAR TO 'town(x)*' ORDER BY 1;
SELECT DISTINCT ON (relkind) relkind FROM pg_class WHERE relnamespace = 2200 ORDER BY relkind;
SELECT relname FROM pg_class WHERE oid = {town} UNION SELECT 'other' ORDER BY 1;
SELECT row_number() OVER (ORDER BY attnum), attname FROM pg_attribute WHERE attrelid = {town} AND attnum > 0;
SELECT a.attname, x.n FROM pg_attribute a CROSS JOIN LATERAL (SELECT a.attnum + 1 AS n) x WHERE a.attrelid = {town} AND a.attnum > 0 ORDER BY 2;
SELECT rolname FROM pg_roles WHERE rolcanlogin ORDER BY 1;
SELECT string_agg(attname, ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = {town} AND attnum > 0;
SELECT 'a' AS select, 'b' AS "User", 'c' AS Mixed;
SELECT attrelid::regclass, array_agg(attname ORDER BY attnum) FROM pg_attribute WHERE attrelid = {town} AND attnum > 0 GROUP BY attrelid;
VALUES (1, 'a'), (2, 'b');
SELECT bool_and(attnum > 0), every(attnum > 0) FROM pg_attribute WHERE attrelid = {town} AND attnum > 0;
SELECT NOT EXISTS (SELECT FROM pg_enum) AS nothing;

-- ODBC
select n.nspname, c.relname, a.attname, a.atttypid, t.typname, a.attnum, a.attlen, a.atttypmod, a.attnotnull, c.relhasrules, c.relkind, c.oid, pg_get_expr(d.adbin, d.adrelid), case t.typtype when 'd' then t.typbasetype else 0 end, t.typtypmod, 0, attidentity, c.relhassubclass from (((pg_catalog.pg_class c inner join pg_catalog.pg_namespace n on n.oid = c.relnamespace and c.relname = 'town' and n.nspname = 'public') inner join pg_catalog.pg_attribute a on (not a.attisdropped) and a.attnum > 0 and a.attrelid = c.oid) inner join pg_catalog.pg_type t on t.oid = a.atttypid) left outer join pg_attrdef d on a.atthasdef and d.adrelid = a.attrelid and d.adnum = a.attnum order by n.nspname, c.relname, attnum;
select relname, nspname, relkind from pg_catalog.pg_class c, pg_catalog.pg_namespace n where relkind in ('r', 'v', 'm', 'f', 'p') and nspname not in ('pg_catalog', 'information_schema', 'pg_toast', 'pg_temp_1') and n.oid = relnamespace order by nspname, relname;
select ta.attname, ia.attnum, ic.relname, n.nspname, tc.relname from pg_catalog.pg_attribute ta, pg_catalog.pg_attribute ia, pg_catalog.pg_class tc, pg_catalog.pg_index i, pg_catalog.pg_namespace n, pg_catalog.pg_class ic where tc.relname = 'town' AND n.nspname = 'public' AND tc.oid = i.indrelid AND n.oid = tc.relnamespace AND i.indisprimary = 't' AND ia.attrelid = i.indexrelid AND ta.attrelid = i.indrelid AND ta.attnum = i.indkey[ia.attnum-1] AND (NOT ta.attisdropped) AND (NOT ia.attisdropped) AND ic.oid = i.indexrelid order by ia.attnum;
select c.relname, i.indkey, i.indisunique, i.indisclustered, a.amname, c.relhasrules, n.nspname, c.oid, 0, case when d.indkey[0] > 0 then 1 else 0 end from pg_catalog.pg_index i join pg_catalog.pg_index d on d.indexrelid = i.indexrelid, pg_catalog.pg_class c, pg_catalog.pg_class d2, pg_catalog.pg_am a, pg_catalog.pg_namespace n where d2.relname = 'pg_type' and n.nspname = 'pg_catalog' and n.oid = d2.relnamespace and d2.oid = i.indrelid and i.indexrelid = c.oid and c.relam = a.oid order by i.indisprimary desc, i.indisunique, n.nspname, c.relname;

-- Npgsql (Power BI)
SELECT ns.nspname, t.oid, t.typname, t.typtype, t.typnotnull, t.elemtypoid FROM (SELECT typ.oid, typ.typnamespace, typ.typname, typ.typtype, typ.typrelid, typ.typnotnull, typ.relkind, elemtyp.oid AS elemtypoid, elemtyp.typname AS elemtypname, elemcls.relkind AS elemrelkind, CASE WHEN elemproc.proname='array_recv' THEN 'a' ELSE elemtyp.typtype END AS elemtyptype FROM (SELECT typ.oid, typnamespace, typname, typrelid, typnotnull, relkind, typelem AS elemoid, CASE WHEN proc.proname='array_recv' THEN 'a' ELSE typ.typtype END AS typtype, CASE WHEN proc.proname='array_recv' THEN typ.typelem WHEN typ.typtype='r' THEN rngsubtype WHEN typ.typtype='m' THEN (SELECT rngtypid FROM pg_range WHERE rngmultitypid = typ.oid) WHEN typ.typtype='d' THEN typ.typbasetype END AS elemtypoid FROM pg_type AS typ LEFT JOIN pg_class AS cls ON (cls.oid = typ.typrelid) LEFT JOIN pg_proc AS proc ON proc.oid = typ.typreceive LEFT JOIN pg_range ON (pg_range.rngtypid = typ.oid)) AS typ LEFT JOIN pg_type AS elemtyp ON elemtyp.oid = elemtypoid LEFT JOIN pg_class AS elemcls ON (elemcls.oid = elemtyp.typrelid) LEFT JOIN pg_proc AS elemproc ON elemproc.oid = elemtyp.typreceive) AS t JOIN pg_namespace AS ns ON (ns.oid = typnamespace) WHERE typtype IN ('b', 'r', 'm', 'e', 'd') OR (typtype = 'c' AND relkind='c') OR (typtype = 'p' AND typname IN ('record', 'void')) OR (typtype = 'a' AND (elemtyptype IN ('b', 'r', 'm', 'e', 'd') OR (elemtyptype = 'p' AND elemtypname IN ('record', 'void')) OR (elemtyptype = 'c' AND elemrelkind='c'))) ORDER BY CASE WHEN typtype IN ('b', 'e', 'p') THEN 0 WHEN typtype = 'c' THEN 1 WHEN typtype = 'r' THEN 2 WHEN typtype = 'm' THEN 3 WHEN typtype = 'd' AND elemtyptype <> 'a' THEN 4 WHEN typtype = 'a' THEN 5 WHEN typtype = 'd' AND elemtyptype = 'a' THEN 6 END;

-- Ruby, Elixir, Go, JavaScript
SELECT t.oid, t.typname, t.typelem, t.typdelim, t.typinput, r.rngsubtype, t.typtype, t.typbasetype FROM pg_type as t LEFT JOIN pg_range as r ON oid = rngtypid WHERE t.typname IN ('int2', 'int4', 'text', 'bool', 'daterange');
SELECT a.attname, format_type(a.atttypid, a.atttypmod), pg_get_expr(d.adbin, d.adrelid), a.attnotnull, a.atttypid, a.atttypmod, c.collname, col_description(a.attrelid, a.attnum) AS comment, attidentity AS identity, attgenerated as attgenerated FROM pg_attribute a LEFT JOIN pg_attrdef d ON a.attrelid = d.adrelid AND a.attnum = d.adnum LEFT JOIN pg_type t ON a.atttypid = t.oid LEFT JOIN pg_collation c ON a.attcollation = c.oid AND a.attcollation <> t.typcollation WHERE a.attrelid = '"town"'::regclass AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum;
SELECT a.attname FROM (SELECT indrelid, indkey, generate_subscripts(indkey, 1) idx FROM pg_index WHERE indrelid = '"pg_type"'::regclass AND indisprimary) i JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[i.idx] ORDER BY i.idx;
SELECT t.oid, t.typname, t.typsend, t.typreceive, t.typoutput, t.typinput, coalesce(d.typelem, t.typelem), coalesce(r.rngsubtype, 0), ARRAY (SELECT a.atttypid FROM pg_attribute AS a WHERE a.attrelid = t.typrelid AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum) FROM pg_type AS t LEFT JOIN pg_type AS d ON t.typbasetype = d.oid LEFT JOIN pg_range AS r ON r.rngtypid = t.oid OR r.rngmultitypid = t.oid OR (t.typbasetype <> 0 AND r.rngtypid = t.typbasetype) WHERE (t.typrelid = 0) AND (t.typelem = 0 OR NOT EXISTS (SELECT 1 FROM pg_catalog.pg_type s WHERE s.typrelid != 0 AND s.oid = t.typelem)) AND t.oid < 200;
SELECT EXISTS(SELECT 1 FROM pg_namespace WHERE nspname = 'public'), current_setting('server_version_num')::integer >= 150000 AS numeric_version;
SELECT n.nspname AS namespace, c.relname AS table_name, (c.relhassubclass AND c.relkind = 'p') AS is_partition, c.relrowsecurity, description.description FROM pg_class AS c INNER JOIN pg_namespace n ON n.oid = c.relnamespace LEFT JOIN pg_description description ON description.objoid = c.oid AND description.objsubid = 0 WHERE n.nspname = ANY ( '{public,synthetic}' ) AND c.relkind IN ('r', 'p') ORDER BY n.nspname, c.relname;
SELECT oid, typname, typrelid::regclass::text, typtype::text FROM pg_type WHERE typtype = 'c' AND typnamespace = 'public'::regnamespace;
SELECT nspname || '.' || relname AS full, relkind::text || 'x', c.oid || '', (c.oid)::int8 + 1 > 0 FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE c.oid = {town};
SELECT * FROM (SELECT c.oid::regclass AS rel, c.relkind FROM pg_class c) q WHERE q.rel = 'town'::regclass;
SELECT conname, conkey, pg_get_constraintdef(oid), conrelid::regclass FROM pg_constraint WHERE conrelid = 'pg_type'::regclass ORDER BY 1;
SELECT regexp_replace('a1b2', '[0-9]', '', 'g'), lower('A') || initcap('ab cd'), lpad('x', 3, '-'), left('abc', 2), reverse('abc'), trim(both ' ' from ' a '), md5('a'), ascii('a'), chr(65), btrim('xax', 'x'), concat_ws('-', 'a', NULL, 'b');
SELECT 5 BETWEEN 1 AND 9, 1 IN (1, 2), NULL IS NULL, 'a' IS DISTINCT FROM NULL, NOT true, true AND NULL, coalesce(NULL::int, 3), 3 <> ALL (ARRAY[1, 2]), 'b' LIKE ANY (ARRAY['a%', 'b%']);
SELECT date '2020-01-31' + interval '1 month', extract(epoch from timestamp '2020-01-01 00:00:00'), to_char(date '2020-03-04', 'YYYY-MM-DD'), date_trunc('month', timestamp '2020-03-04 05:06:07'), date_trunc('year', date '2020-03-04');
SELECT has_table_privilege(c.oid, 'SELECT'), has_table_privilege('ada', c.oid, 'UPDATE'), has_any_column_privilege(c.oid, 'SELECT'), pg_has_role('custodian', 'USAGE') FROM pg_class c WHERE c.oid = {town};
SELECT i.inhrelid FROM pg_inherits i WHERE i.inhparent = 'town'::regclass::oid;
SELECT array_agg(relname ORDER BY relname) FILTER (WHERE relkind = 'r'), count(*) FILTER (WHERE relkind = 'v') FROM pg_class WHERE relnamespace IN (2200, 'synthetic'::regnamespace);
SELECT array_length(ARRAY[1, 2], 1), cardinality(ARRAY[1, 2, 3]), ARRAY[1, 2] || 3, ARRAY[1] || ARRAY[2], array_append(ARRAY[1], 2), array_position(ARRAY['a', 'b'], 'b'), 2 = ANY (ARRAY[1, 2]), ARRAY[1, 2] @> ARRAY[1], (ARRAY[1, 2, 3])[1:2];
SELECT grp.relkind, grp.n FROM (SELECT relkind, count(*) AS n FROM pg_class WHERE relnamespace = 2200 GROUP BY relkind HAVING count(*) > 0) grp ORDER BY grp.n DESC, 1 LIMIT 5 OFFSET 0;
SELECT a.attname FROM pg_attribute a NATURAL JOIN (SELECT {town}::oid AS attrelid) x WHERE a.attnum = 1;
SELECT relname FROM pg_class FETCH FIRST 0 ROWS ONLY;
SELECT t.* FROM (VALUES (1, 'x'), (2, NULL)) AS t(a, b) ORDER BY t.a;
SELECT 'abc'::varchar(2), 'x'::char(3), 1.5::numeric(3,1), '12'::int8, 1::bool, 'yes'::boolean, 3.7::int, 2.5::int;
SELECT ('town'::regclass)::oid::regclass::text, '"town"'::regclass, 'public.town'::regclass, 'PUBLIC.Town'::regclass;
SELECT relowner::regrole, relnamespace::regnamespace, reltype::regtype, relam FROM pg_class WHERE oid = {town};
