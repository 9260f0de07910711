-- The functions of Postgres' catalog as macros of DuckDB: us_format_type is what format_type becomes, and so on.
-- pgc holds pg_catalog; us_formats, us_indexes, us_constraints, us_functions and us_keywords hold what Postgres
-- computes about its own objects. A macro that depends on the search path takes it as its last argument.

-- ---- definitions
CREATE MACRO us_format_type
  (o, m) AS (
    CASE WHEN o IS NULL THEN NULL WHEN o = 0 THEN '-' WHEN m > 4 AND o = 1043 THEN 'character varying(' || (m -
      4)::VARCHAR || ')' WHEN m > 4 AND o = 1042 THEN 'character(' || (m - 4)::VARCHAR || ')' WHEN m >= 0 AND o
      = 1184 THEN 'timestamp(' || m::VARCHAR || ') with time zone' WHEN m >= 0 AND o = 1114 THEN 'timestamp('
      || m::VARCHAR || ') without time zone' ELSE coalesce((SELECT zt.name FROM pgc.us_formats zt WHERE zt.oid
      = TRY_CAST(o AS UINTEGER)), '???') END
  );
CREATE MACRO us_pg_get_userbyid
  (o) AS (
    coalesce((SELECT zo.rolname FROM pgc.pg_roles zo WHERE zo.oid = o::UINTEGER), 'unknown (OID=' || o::VARCHAR
      || ')')
  );
CREATE MACRO us_pg_get_expr
  (a, b) AS (a),
  (a, b, c) AS (a);
CREATE MACRO us_pg_get_indexdef
  (o) AS (
    (SELECT max(zf.text) FROM pgc.us_indexes zf WHERE zf.oid = TRY_CAST(o AS UINTEGER))
  ),
  (o, n, p) AS (
    CASE WHEN n = 0 THEN CASE WHEN p THEN (SELECT max(zf.pretty) FROM pgc.us_indexes zf WHERE zf.oid =
      TRY_CAST(o AS UINTEGER)) ELSE (SELECT max(zf.text) FROM pgc.us_indexes zf WHERE zf.oid = TRY_CAST(o AS
      UINTEGER)) END ELSE (SELECT za.attname FROM pgc.pg_attribute za WHERE za.attrelid = TRY_CAST(o AS
      UINTEGER) AND za.attnum = n) END
  );
CREATE MACRO us_pg_get_constraintdef
  (o) AS (
    (SELECT max(zf.text) FROM pgc.us_constraints zf WHERE zf.oid = TRY_CAST(o AS UINTEGER))
  ),
  (o, p) AS (
    CASE WHEN p THEN (SELECT max(zf.pretty) FROM pgc.us_constraints zf WHERE zf.oid = TRY_CAST(o AS UINTEGER))
      ELSE (SELECT max(zf.text) FROM pgc.us_constraints zf WHERE zf.oid = TRY_CAST(o AS UINTEGER)) END
  );
CREATE MACRO us_pg_get_function_arguments
  (o) AS (
    (SELECT max(zf.arguments) FROM pgc.us_functions zf WHERE zf.oid = TRY_CAST(o AS UINTEGER))
  );
CREATE MACRO us_pg_get_function_identity_arguments
  (o) AS (
    (SELECT max(zf.identity) FROM pgc.us_functions zf WHERE zf.oid = TRY_CAST(o AS UINTEGER))
  );
CREATE MACRO us_pg_get_function_result
  (o) AS (
    (SELECT max(zf.result) FROM pgc.us_functions zf WHERE zf.oid = TRY_CAST(o AS UINTEGER))
  );
CREATE MACRO us_pg_get_functiondef (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_get_function_sqlbody (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_get_function_arg_default (o, n) AS (NULL::VARCHAR);
CREATE MACRO us_pg_get_viewdef
  (o) AS (NULL::VARCHAR),
  (o, p) AS (NULL::VARCHAR);
CREATE MACRO us_pg_get_ruledef
  (o) AS (NULL::VARCHAR),
  (o, p) AS (NULL::VARCHAR);
CREATE MACRO us_pg_get_triggerdef
  (o) AS (NULL::VARCHAR),
  (o, p) AS (NULL::VARCHAR);
CREATE MACRO us_pg_get_partkeydef (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_get_partition_constraintdef (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_get_serial_sequence (a, b) AS (NULL::VARCHAR);
CREATE MACRO us_pg_get_statisticsobjdef (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_get_statisticsobjdef_columns (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_get_replica_identity_index (o) AS (NULL::UINTEGER);

-- ---- descriptions
CREATE MACRO us_obj_description
  (o) AS (
    (SELECT max(zd.description) FROM pgc.pg_description zd WHERE zd.objoid = TRY_CAST(o AS UINTEGER) AND
      zd.objsubid = 0)
  ),
  (o, c) AS (
    (SELECT max(zd.description) FROM pgc.pg_description zd WHERE zd.objoid = TRY_CAST(o AS UINTEGER) AND
      zd.objsubid = 0 AND zd.classoid = (SELECT zr.oid FROM pgc.pg_class zr WHERE zr.relname = c AND
      zr.relnamespace = 11))
  );
CREATE MACRO us_col_description
  (o, n) AS (
    (SELECT max(zd.description) FROM pgc.pg_description zd WHERE zd.objoid = TRY_CAST(o AS UINTEGER) AND
      zd.objsubid = n AND zd.objsubid <> 0 AND zd.classoid = 1259)
  );
CREATE MACRO us_shobj_description
  (o, c) AS (
    (SELECT max(zd.description) FROM pgc.pg_shdescription zd WHERE zd.objoid = TRY_CAST(o AS UINTEGER) AND
      zd.classoid = (SELECT zr.oid FROM pgc.pg_class zr WHERE zr.relname = c AND zr.relnamespace = 11))
  );

-- ---- names and numbers
CREATE MACRO us_to_regclass
  (t, s) AS (
    (SELECT zc.oid FROM pgc.pg_class zc JOIN pgc.pg_namespace zn ON zn.oid = zc.relnamespace WHERE CASE WHEN
      contains(t, '.') THEN zn.nspname = replace(string_split(t, '.')[1], '"', '') ELSE list_contains(s,
      zn.nspname) END AND zc.relname = replace(string_split(t, '.')[-1], '"', '') ORDER BY list_position(s,
      zn.nspname) LIMIT 1)
  );
CREATE MACRO us_to_regtype
  (t) AS (
    coalesce((SELECT min(zt.oid) FROM pgc.us_formats zt WHERE zt.name = lower(t)), (SELECT min(zp.oid) FROM
      pgc.pg_type zp WHERE zp.typname = replace(string_split(t, '.')[-1], '"', '')))
  );
CREATE MACRO us_to_regnamespace
  (t) AS (
    (SELECT zn.oid FROM pgc.pg_namespace zn WHERE zn.nspname = replace(t, '"', ''))
  );
CREATE MACRO us_to_regrole
  (t) AS (
    (SELECT zo.oid FROM pgc.pg_roles zo WHERE zo.rolname = replace(t, '"', ''))
  );
CREATE MACRO us_to_regproc
  (t) AS (
    (SELECT min(zp.oid) FROM pgc.pg_proc zp WHERE zp.proname = string_split(t, '.')[-1])
  );
CREATE MACRO us_regclass_out
  (o, s) AS (
    coalesce((SELECT CASE WHEN list_contains(s, zn.nspname) THEN '' ELSE CASE WHEN
      regexp_full_match(zn.nspname, '[a-z_][a-z0-9_$]*') THEN zn.nspname ELSE '"' || replace(zn.nspname, '"',
      '""') || '"' END || '.' END || CASE WHEN regexp_full_match(zc.relname, '[a-z_][a-z0-9_$]*') THEN
      zc.relname ELSE '"' || replace(zc.relname, '"', '""') || '"' END FROM pgc.pg_class zc JOIN
      pgc.pg_namespace zn ON zn.oid = zc.relnamespace WHERE zc.oid = o::UINTEGER), CASE WHEN o = 0 THEN '-'
      ELSE o::VARCHAR END)
  );
CREATE MACRO us_regtype_out
  (o) AS (
    coalesce((SELECT zt.name FROM pgc.us_formats zt WHERE zt.oid = TRY_CAST(o AS UINTEGER)), CASE WHEN o = 0
      THEN '-' ELSE o::VARCHAR END)
  );
CREATE MACRO us_regtypes_out
  (a) AS (
    CASE WHEN a IS NOT NULL THEN coalesce((SELECT list(zt.name ORDER BY zu.i) FROM (SELECT unnest(a) AS o,
      generate_subscripts(a, 1) AS i) zu JOIN pgc.us_formats zt ON zt.oid = zu.o), []::VARCHAR[]) END
  );
CREATE MACRO us_regproc_out
  (o) AS (
    coalesce((SELECT CASE WHEN (SELECT count(*) FROM pgc.pg_proc zq WHERE zq.proname = zp.proname) > 1 THEN
      'pg_catalog.' ELSE '' END || zp.proname FROM pgc.pg_proc zp WHERE zp.oid = o::UINTEGER), CASE WHEN o = 0
      THEN '-' ELSE o::VARCHAR END)
  );
CREATE MACRO us_regprocedure_out
  (o) AS (
    coalesce((SELECT zp.proname || '(' || replace(zf.identity, ', ', ',') || ')' FROM pgc.pg_proc zp JOIN
      pgc.us_functions zf ON zf.oid = zp.oid WHERE zp.oid = o::UINTEGER), CASE WHEN o = 0 THEN '-' ELSE
      o::VARCHAR END)
  );
CREATE MACRO us_regnamespace_out
  (o) AS (
    coalesce((SELECT CASE WHEN regexp_full_match(zo.nspname, '[a-z_][a-z0-9_$]*') THEN zo.nspname ELSE '"' ||
      replace(zo.nspname, '"', '""') || '"' END FROM pgc.pg_namespace zo WHERE zo.oid = o::UINTEGER), CASE WHEN
      o = 0 THEN '-' ELSE o::VARCHAR END)
  );
CREATE MACRO us_regrole_out
  (o) AS (
    coalesce((SELECT CASE WHEN regexp_full_match(zo.rolname, '[a-z_][a-z0-9_$]*') THEN zo.rolname ELSE '"' ||
      replace(zo.rolname, '"', '""') || '"' END FROM pgc.pg_roles zo WHERE zo.oid = o::UINTEGER), CASE WHEN o =
      0 THEN '-' ELSE o::VARCHAR END)
  );
CREATE MACRO us_regoper_out
  (o) AS (
    coalesce((SELECT zo.oprname FROM pgc.pg_operator zo WHERE zo.oid = o::UINTEGER), CASE WHEN o = 0 THEN '-'
      ELSE o::VARCHAR END)
  );
CREATE MACRO us_regcollation_out
  (o) AS (
    coalesce((SELECT CASE WHEN regexp_full_match(zo.collname, '[a-z_][a-z0-9_$]*') THEN zo.collname ELSE '"' ||
      replace(zo.collname, '"', '""') || '"' END FROM pgc.pg_collation zo WHERE zo.oid = o::UINTEGER), CASE
      WHEN o = 0 THEN '-' ELSE o::VARCHAR END)
  );
CREATE MACRO us_regconfig_out
  (o) AS (
    coalesce((SELECT zo.cfgname FROM pgc.pg_ts_config zo WHERE zo.oid = o::UINTEGER), CASE WHEN o = 0 THEN '-'
      ELSE o::VARCHAR END)
  );
CREATE MACRO us_regdictionary_out
  (o) AS (
    coalesce((SELECT zo.dictname FROM pgc.pg_ts_dict zo WHERE zo.oid = o::UINTEGER), CASE WHEN o = 0 THEN '-'
      ELSE o::VARCHAR END)
  );
CREATE MACRO us_quote_ident
  (a) AS (
    CASE WHEN regexp_full_match(a, '[a-z_][a-z0-9_$]*') AND a NOT IN (SELECT zk.word FROM pgc.us_keywords zk
      WHERE zk.catcode <> 'U') THEN a ELSE '"' || replace(a, '"', '""') || '"' END
  );
CREATE MACRO us_quote_literal (a) AS ('''' || replace(a::VARCHAR, '''', '''''') || '''');
CREATE MACRO us_quote_nullable (a) AS (coalesce('''' || replace(a::VARCHAR, '''', '''''') || '''', 'NULL'));
CREATE MACRO us_parse_ident
  (a) AS (
    list_transform(string_split(a, '.'), lambda p: CASE WHEN starts_with(p, '"') THEN replace(p, '"', '') ELSE
      lower(p) END)
  );
CREATE MACRO us_pg_encoding_to_char (e) AS (CASE e WHEN 6 THEN 'UTF8' WHEN 0 THEN 'SQL_ASCII' ELSE '' END);
CREATE MACRO us_pg_char_to_encoding (e) AS (CASE upper(e) WHEN 'UTF8' THEN 6 WHEN 'SQL_ASCII' THEN 0 ELSE -1 END);
CREATE MACRO us_pg_typeof (a) AS (NULL::VARCHAR);

-- ---- privileges: everybody may read, and nobody may write
CREATE MACRO us_has_table_privilege
  (a, p) AS (regexp_matches(lower(p), '^\s*select(\s+with grant option)?\s*(,|$)')),
  (u, a, p) AS (regexp_matches(lower(p), '^\s*select(\s+with grant option)?\s*(,|$)'));
CREATE MACRO us_has_any_column_privilege
  (a, p) AS (regexp_matches(lower(p), '^\s*select(\s+with grant option)?\s*(,|$)')),
  (u, a, p) AS (regexp_matches(lower(p), '^\s*select(\s+with grant option)?\s*(,|$)'));
CREATE MACRO us_has_column_privilege
  (a, c, p) AS (regexp_matches(lower(p), '^\s*select(\s+with grant option)?\s*(,|$)')),
  (u, a, c, p) AS (regexp_matches(lower(p), '^\s*select(\s+with grant option)?\s*(,|$)'));
CREATE MACRO us_has_schema_privilege
  (a, p) AS ((lower(p) LIKE '%usage%')),
  (u, a, p) AS ((lower(p) LIKE '%usage%'));
CREATE MACRO us_has_database_privilege
  (a, p) AS (regexp_matches(lower(p), 'connect|temp')),
  (u, a, p) AS (regexp_matches(lower(p), 'connect|temp'));
CREATE MACRO us_has_function_privilege
  (a, p) AS (true),
  (u, a, p) AS (true);
CREATE MACRO us_has_language_privilege
  (a, p) AS (true),
  (u, a, p) AS (true);
CREATE MACRO us_has_type_privilege
  (a, p) AS (true),
  (u, a, p) AS (true);
CREATE MACRO us_has_sequence_privilege
  (a, p) AS (false),
  (u, a, p) AS (false);
CREATE MACRO us_has_tablespace_privilege
  (a, p) AS (false),
  (u, a, p) AS (false);
CREATE MACRO us_has_server_privilege
  (a, p) AS (false),
  (u, a, p) AS (false);
CREATE MACRO us_has_foreign_data_wrapper_privilege
  (a, p) AS (false),
  (u, a, p) AS (false);
CREATE MACRO us_has_parameter_privilege
  (a, p) AS (false),
  (u, a, p) AS (false);
CREATE MACRO us_pg_has_role
  (a, p) AS (false),
  (u, a, p) AS (false);
CREATE MACRO us_row_security_active (a) AS (false);

-- ---- the server: nothing is told about other sessions, sizes or times
CREATE MACRO us_pg_is_in_recovery () AS (false);
CREATE MACRO us_pg_is_wal_replay_paused () AS (false);
CREATE MACRO us_pg_backend_pid () AS (1);
CREATE MACRO us_pg_my_temp_schema () AS (0::UINTEGER);
CREATE MACRO us_pg_is_other_temp_schema (o) AS (false);
CREATE MACRO us_pg_relation_is_publishable (o) AS (false);
CREATE MACRO us_pg_relation_is_updatable (o, p) AS (0);
CREATE MACRO us_pg_column_is_updatable (o, n, p) AS (false);
CREATE MACRO us_pg_tablespace_location (o) AS ('');
CREATE MACRO us_pg_tablespace_size (o) AS (0::BIGINT);
CREATE MACRO us_pg_total_relation_size (o) AS (0::BIGINT);
CREATE MACRO us_pg_relation_size
  (o) AS (0::BIGINT),
  (o, f) AS (0::BIGINT);
CREATE MACRO us_pg_table_size (o) AS (0::BIGINT);
CREATE MACRO us_pg_indexes_size (o) AS (0::BIGINT);
CREATE MACRO us_pg_database_size (o) AS (0::BIGINT);
CREATE MACRO us_pg_relation_filenode (o) AS (NULL::UINTEGER);
CREATE MACRO us_pg_relation_filepath (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_sequence_last_value (o) AS (NULL::BIGINT);
CREATE MACRO us_pg_size_pretty (n) AS (n::BIGINT::VARCHAR || ' bytes');
CREATE MACRO us_pg_stat_get_numscans (o) AS (0::BIGINT);
CREATE MACRO us_pg_stat_get_live_tuples (o) AS (0::BIGINT);
CREATE MACRO us_pg_stat_get_tuples_inserted (o) AS (0::BIGINT);
CREATE MACRO us_pg_stat_get_last_analyze_time (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_stat_get_last_autoanalyze_time (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_stat_get_last_vacuum_time (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_stat_get_last_autovacuum_time (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_postmaster_start_time () AS (NULL::VARCHAR);
CREATE MACRO us_pg_conf_load_time () AS (NULL::VARCHAR);
CREATE MACRO us_pg_current_wal_lsn () AS (NULL::VARCHAR);
CREATE MACRO us_pg_last_wal_receive_lsn () AS (NULL::VARCHAR);
CREATE MACRO us_pg_last_wal_replay_lsn () AS (NULL::VARCHAR);
CREATE MACRO us_pg_last_xact_replay_timestamp () AS (NULL::VARCHAR);
CREATE MACRO us_pg_blocking_pids (p) AS ([]::INTEGER[]);
CREATE MACRO us_pg_advisory_unlock_all () AS (NULL::VARCHAR);
CREATE MACRO us_pg_jit_available () AS (false);
CREATE MACRO us_pg_collation_actual_version (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_collation_for (a) AS (NULL::VARCHAR);
CREATE MACRO us_pg_database_collation_actual_version (o) AS (NULL::VARCHAR);
CREATE MACRO us_pg_listening_channels () AS (NULL::VARCHAR);
CREATE MACRO us_txid_current () AS (716::BIGINT);
CREATE MACRO us_txid_current_if_assigned () AS (NULL::BIGINT);
CREATE MACRO us_pg_current_xact_id () AS (716::BIGINT);
CREATE MACRO us_pg_snapshot_xmin (a) AS (716::BIGINT);
CREATE MACRO us_inet_server_addr () AS (NULL::VARCHAR);
CREATE MACRO us_inet_server_port () AS (NULL::INTEGER);
CREATE MACRO us_inet_client_addr () AS (NULL::VARCHAR);
CREATE MACRO us_inet_client_port () AS (NULL::INTEGER);
CREATE MACRO us_getdatabaseencoding () AS ('UTF8');
CREATE MACRO us_pg_client_encoding () AS ('UTF8');
CREATE MACRO us_age (x) AS (0::INTEGER);
CREATE MACRO us_mxid_age (x) AS (0::INTEGER);
CREATE MACRO us_setting_of
  (n) AS (
    (SELECT max(zs.setting) FROM pgc.pg_settings zs WHERE lower(zs.name) = lower(n))
  );

-- ---- arrays and texts
CREATE MACRO us_array_upper (a, n) AS (CASE WHEN n = 1 THEN nullif(len(a), 0)::INTEGER END);
CREATE MACRO us_array_lower (a, n) AS (CASE WHEN n = 1 AND len(a) > 0 THEN 1 END);
CREATE MACRO us_array_length (a, n) AS (CASE WHEN n = 1 THEN nullif(len(a), 0)::INTEGER END);
CREATE MACRO us_cardinality (a) AS (len(a)::INTEGER);
CREATE MACRO us_array_ndims (a) AS (CASE WHEN len(a) > 0 THEN 1 END);
CREATE MACRO us_array_position (a, b) AS (list_position(a, b));
CREATE MACRO us_array_remove (a, b) AS (list_filter(a, lambda p: p IS DISTINCT FROM b));
CREATE MACRO us_array_out
  (a) AS (
    CASE WHEN a IS NULL THEN NULL ELSE '{' || coalesce(array_to_string(list_transform(a, lambda p: CASE WHEN p
      IS NULL THEN 'NULL' WHEN p = '' OR regexp_matches(p, '[{},"\s\\]') OR upper(p) = 'NULL' THEN '"' ||
      replace(replace(p, '\', '\\'), '"', '\"') || '"' ELSE p END), ','), '') || '}' END
  );
CREATE MACRO us_vector_array_lower (a, n) AS (CASE WHEN n = 1 AND len(a) > 0 THEN 0 END);
CREATE MACRO us_vector_array_upper (a, n) AS (CASE WHEN n = 1 AND len(a) > 0 THEN len(a)::INTEGER - 1 END);
CREATE MACRO us_vector_generate_subscripts (a, n) AS (unnest(range(0, len(a)))::INTEGER);
CREATE MACRO us_generate_subscripts (a, n) AS (unnest(range(1, len(a) + 1))::INTEGER);
CREATE MACRO us__pg_expandarray
  (a) AS (
    unnest(list_transform(range(1, len(a) + 1), lambda p: {'x': a[p], 'n': p::INTEGER}))
  );
CREATE MACRO us_pg_partition_ancestors (o) AS (unnest([]::UINTEGER[]));
CREATE MACRO us_pg_partition_root (o) AS (NULL::UINTEGER);
CREATE MACRO us__pg_truetypid (a, t) AS (NULL::UINTEGER);
CREATE MACRO us_string_to_array (a, b) AS (CASE WHEN a = '' THEN []::VARCHAR[] ELSE string_split(a, b) END);
CREATE MACRO us_btrim
  (a) AS (trim(a)),
  (a, b) AS (trim(a, b));
CREATE MACRO us_acldefault (k, o) AS (NULL::VARCHAR[]);
CREATE MACRO us_pg_get_acl (a, b, c) AS (NULL::VARCHAR[]);
CREATE MACRO us_pg_notify (a, b) AS (NULL::VARCHAR);
CREATE MACRO us_pg_sleep (a) AS (NULL::VARCHAR);
CREATE MACRO us_pg_cancel_backend (p) AS (false);
CREATE MACRO us_pg_terminate_backend
  (p) AS (false),
  (p, t) AS (false);

-- ---- what the search path finds
CREATE MACRO us_pg_collation_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_collation zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.collnamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_conversion_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_conversion zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.connamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_function_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_proc zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.pronamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_opclass_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_opclass zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.opcnamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_operator_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_operator zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.oprnamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_opfamily_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_opfamily zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.opfnamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_statistics_obj_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_statistic_ext zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.stxnamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_table_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_class zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.relnamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_ts_config_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_ts_config zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.cfgnamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_ts_dict_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_ts_dict zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.dictnamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_ts_parser_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_ts_parser zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.prsnamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_ts_template_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_ts_template zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.tmplnamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
CREATE MACRO us_pg_type_is_visible
  (o, s) AS ((
    SELECT list_contains(s, zn.nspname) FROM pgc.pg_type zv JOIN pgc.pg_namespace zn ON zn.oid =
      zv.typnamespace WHERE zv.oid = TRY_CAST(o AS UINTEGER)
  ));
