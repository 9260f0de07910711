// What node-pg does: rows, parameters, a named statement, a notice, an error with its code and hint.
const { Client } = require('pg');

async function main() {
  const [port, user, password] = process.argv.slice(2);
  const client = new Client({ host: '127.0.0.1', port: Number(port), user, password, database: 'understudy' });
  const notices = [];
  client.on('notice', (notice) => notices.push(notice.message));
  await client.connect();
  const told = {};
  told.rows = (await client.query('SELECT sex, count(*) AS n FROM town GROUP BY sex ORDER BY sex')).rows;
  const sql = 'SELECT count(*) AS n FROM town WHERE age < $1 AND district = $2';
  told.value = (await client.query(sql, [30, 'Inkwharf'])).rows[0].n;
  for (let i = 0; i < 3; i += 1) {
    told.named = (await client.query({ name: 'young', text: sql, values: [30, 'Inkwharf'] })).rows[0].n;
  }
  told.fields = (await client.query('SELECT smoker, count(*) FROM town GROUP BY 1')).fields.map((f) => f.dataTypeID);
  try {
    await client.query('SELECT max(age) FROM town');
  } catch (error) {
    told.error = { code: error.code, hint: error.hint };
  }
  told.notices = notices;
  await client.end();
  console.log(JSON.stringify(told));
}

main();
